"""From a question to a plan: which parts can match, in pieces that share no key."""
