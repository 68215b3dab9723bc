# What zsh makes of words and a press of the tabulator: tests/e2e/completion.zsh FOLDER, where _holdfast lies.
zmodload zsh/zpty
zpty it zsh -f -i
zpty -w it "fpath=($1 \$fpath); autoload -Uz compinit; compinit -u -D; bindkey '^I' complete-word"
# Keys are taken one after the other: this one tells what the one before it has made of the line.
zpty -w it "tell() { print -r -- \"LI\"\"NE<\$BUFFER>\"; BUFFER= }; zle -N tell; bindkey '^X' tell"
failed=0
expect() {
  zpty -w -n it "$1"$'\t\x18'
  zpty -r it text $'*LINE<*>*' || { print "zsh ended"; exit 1; }
  local line=${${text##*LINE<}%%>*}
  [[ $line == "$2" ]] || { print -r -- "\"$1\" became \"$line\", not \"$2\""; failed=1; }
}
expect 'holdfast hand' 'holdfast handover '
expect 'holdfast --log-l' 'holdfast --log-level '
expect 'holdfast --log-level war' 'holdfast --log-level warn '
expect 'holdfast list --stat' 'holdfast list --status '
expect 'holdfast list --status waiting_for_a' 'holdfast list --status waiting_for_approval '
expect 'holdfast redrive --dry' 'holdfast redrive --dry-run '
expect 'holdfast completion z' 'holdfast completion zsh '
expect 'holdfast nonsense' 'holdfast nonsense'
zpty -d it
exit $failed
