# bash completion of sluice(1)

# Names of directives, blocks and log formats, from `sluice help`.
_sluice_help_names() {
    sluice help 2>/dev/null | sed -n '2,${/^variables/d;s/^[^:]*://p}' | tr -s ' ' '\n' | sort -u
}

_sluice_options() { # COMMAND: its options; '': those of the server
    case $1 in
    serve) echo --port --spa --autoindex --cert --key --open-to-network --acme --acme-directory --help ;;
    doctor) echo --json -c --report --seconds --no-benchmark --help ;;
    explain) echo -c -p -g --format --help ;;
    lint) echo --format --help ;;
    fmt) echo -w --check --diff --help ;;
    import) echo -o -p --report --help ;;
    top) echo --once --json --interval --help ;;
    ctl) echo -s -c --json --help ;;
    docs | help | schema) echo --help ;;
    *) echo -c -p -e -g -t -T -q -s -v -V -h ;;
    esac
}

# The commands of ctl that begin with the given words.
_sluice_ctl_words() { # WORD...
    sluice ctl help 2>/dev/null | awk -v given="$*" 'NR > 2 { line = $0; sub(/^  /, "", line); sub(/  .*/, "", line)
        count = split(line, words, " "); skip = split(given, before, " "); same = count > skip
        for (i = 1; i <= skip; i++) same = same && words[i] == before[i]
        if (same && words[skip + 1] !~ /^[A-Z]/) print words[skip + 1] }' | sort -u
}

# Prints the words that can follow; nothing if a file name follows.
_sluice_words() { # COMMAND PREVIOUS CURRENT
    case $1:$2 in
    :-s) echo stop quit reopen reload upgrade ;;
    explain:--format) echo text json ;;
    lint:--format) echo text gcc json sarif ;;
    help:help) _sluice_help_names ;;
    ctl:ctl | ctl:--json) _sluice_ctl_words ;;
    :-[cpeg] | *:-[cpgo] | ctl:-s | serve:--port | serve:--cert | serve:--key | top:--interval | doctor:--seconds) ;;
    ctl:log-level) echo debug info notice warn error crit alert emerg ;;
    ctl:[a-z]*) _sluice_ctl_words "$2" ;;
    *) [[ $3 != -* ]] || _sluice_options "$1" ;;
    esac
}

_sluice() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command='' words files=default
    [ "$COMP_CWORD" = 1 ] || [[ ${COMP_WORDS[1]} = -* ]] || command=${COMP_WORDS[1]}
    words=$(_sluice_words "$command" "$previous" "$current")
    if [ "$COMP_CWORD" = 1 ] && [[ $current != -* ]]; then
        words='serve docs doctor explain lint fmt schema help import top ctl'
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
    case $command:$previous in
    *:-p) files=dirnames ;;
    serve:--cert | serve:--key) ;;
    serve:*) files=dirnames ;;
    docs:* | help:* | schema:* | top:*) return ;;
    esac
    [ -n "$words" ] || compopt -o $files 2>/dev/null || true # compopt fails outside a completion
}

complete -F _sluice sluice
