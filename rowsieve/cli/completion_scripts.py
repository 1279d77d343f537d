"""The scripts that `--install-completion` installs in bash and zsh, in place of typer's.

They ask typer's protocol. Typer's scripts put a space behind a folder or `column=`, which has more
to come; in zsh, the first Tab of a session gives nothing, and summaries lose their apostrophes.
"""

from __future__ import annotations

from typing import Final

_BASH: Final = r"""
%(complete_func)s() {
    local IFS=$'\n'
    COMPREPLY=( $( env COMP_WORDS="${COMP_WORDS[*]}" \
                   COMP_CWORD=$COMP_CWORD \
                   %(autocomplete_var)s=complete_bash $1 ) )
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[/=] ]]; then
        compopt -o nospace 2>/dev/null
    fi
    return 0
}

complete -o default -F %(complete_func)s %(prog_name)s
"""
# The protocol of fish has the summaries as plain text.
_ZSH: Final = r"""
#compdef %(prog_name)s

%(complete_func)s() {
  local line value
  local -a whole begun
  for line in "${(@f)$(env _TYPER_COMPLETE_ARGS="${words[1,$CURRENT]}" \
      _TYPER_COMPLETE_FISH_ACTION=get-args \
      %(autocomplete_var)s=complete_fish %(prog_name)s)}"; do
    value=${line%%$'\t'*}
    [[ -z $value ]] && continue
    [[ $line == *$'\t'* ]] && line="${value//:/\\:}:${line#*$'\t'}" || line=${value//:/\\:}
    [[ $value == *[/=] ]] && begun+=("$line") || whole+=("$line")
  done
  if (( $#whole + $#begun == 0 )); then
    _files
    return
  fi
  (( $#begun )) && _describe '' begun -S ''
  (( $#whole )) && _describe '' whole
  return 0
}

if [[ $funcstack[1] == _%(prog_name)s ]]; then  # completion calls the file itself
  %(complete_func)s "$@"
else
  compdef %(complete_func)s %(prog_name)s
fi
"""


def use_own_scripts() -> None:
    """Let typer install and show our scripts."""
    from typer import _completion_shared

    _completion_shared._completion_scripts.update(bash=_BASH, zsh=_ZSH)
