# bash completion of sluice(1)

# Names of directives, blocks and log formats, from `sluice help`.
_sluice_help_names() {
    sluice help 2>/dev/null | sed -n '2,${/^variables/d;s/^[^:]*://p}' | tr -s ' ' '\n' | sort -u
}

_sluice_options() { # COMMAND: its options; '': those of the server
    case $1 in
    serve) echo --port --spa --autoindex --cert --key --open-to-network --help ;;
    doctor) echo --json -c --report --seconds --no-benchmark --help ;;
    explain) echo -c -p -g --format --help ;;
    lint) echo --format --help ;;
    fmt) echo -w --check --diff --help ;;
    import) echo -o -p --report --help ;;
    top) echo --once --json --interval --help ;;
    docs | help | schema) echo --help ;;
    *) echo -c -p -e -g -t -T -q -s -v -V -h ;;
    esac
}

# Prints the words that can follow; nothing if a file name follows.
_sluice_words() { # COMMAND PREVIOUS CURRENT
    case $1:$2 in
    :-s) echo stop quit reopen reload upgrade ;;
    explain:--format) echo text json ;;
    lint:--format) echo text gcc json sarif ;;
    help:help) _sluice_help_names ;;
    :-[cpeg] | *:-[cpgo] | serve:--port | serve:--cert | serve:--key | top:--interval | doctor:--seconds) ;;
    *) [[ $3 != -* ]] || _sluice_options "$1" ;;
    esac
}

_sluice() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command='' words files=default
    [ "$COMP_CWORD" = 1 ] || [[ ${COMP_WORDS[1]} = -* ]] || command=${COMP_WORDS[1]}
    words=$(_sluice_words "$command" "$previous" "$current")
    if [ "$COMP_CWORD" = 1 ] && [[ $current != -* ]]; then
        words='serve docs doctor explain lint fmt schema help import top'
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
