"""Tables that keep every version of a row, with the interval of event time in which it held."""
