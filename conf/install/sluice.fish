# fish completion of sluice(1)

# Names of directives, blocks and log formats, from `sluice help`.
function __sluice_help_names
    sluice help 2>/dev/null | sed -n '2,${/^variables/d;s/^[^:]*://p}' | tr -s ' ' '\n'
end

# The commands of ctl, and the words that follow each.
function __sluice_ctl_words
    set -l before (commandline -opc)[-1]
    set -l lines (sluice ctl help 2>/dev/null | sed -n '3,$s/^  //p' | sed 's/  .*//')
    if contains -- "$before" ctl --json
        string replace -r ' .*' '' -- $lines | sort -u
    else if test "$before" = log-level
        string split ' ' 'debug info notice warn error crit alert emerg'
    else
        string match -r -g "^$before ([a-z-]+)" -- $lines
    end
end

set -l commands serve docs doctor explain lint fmt schema help import top ctl
set -l main "not __fish_seen_subcommand_from $commands"

complete -c sluice -n __fish_use_subcommand -f -a serve -d 'serve a directory over HTTPS'
complete -c sluice -n __fish_use_subcommand -f -a docs -d 'serve the documentation on this machine'
complete -c sluice -n __fish_use_subcommand -f -a doctor -d 'test whether kernel TLS works here'
complete -c sluice -n __fish_use_subcommand -f -a explain -d 'print the location that answers a URL'
complete -c sluice -n __fish_use_subcommand -f -a lint -d 'report probable mistakes in a configuration'
complete -c sluice -n __fish_use_subcommand -f -a fmt -d 'format configurations'
complete -c sluice -n __fish_use_subcommand -f -a schema -d 'print the JSON Schema of the configuration'
complete -c sluice -n __fish_use_subcommand -f -a help -d 'explain a directive'
complete -c sluice -n __fish_use_subcommand -f -a import -d 'translate a configuration of nginx'
complete -c sluice -n __fish_use_subcommand -f -a top -d 'show the load of a running server'
complete -c sluice -n __fish_use_subcommand -f -a ctl -d 'show and change the state of the running server'

complete -c sluice -n $main -s c -r -F -d 'configuration'
complete -c sluice -n $main -s p -x -a '(__fish_complete_directories)' -d 'where relative paths start'
complete -c sluice -n $main -s e -r -F -d 'error log'
complete -c sluice -n $main -s g -x -d 'YAML read after the file'
complete -c sluice -n $main -s t -d 'test the configuration'
complete -c sluice -n $main -s T -d 'test and print the configuration'
complete -c sluice -n $main -s q -d 'print errors only'
complete -c sluice -n $main -s s -x -a 'stop quit reopen reload upgrade' -d 'signal the server'
complete -c sluice -n $main -s v -d 'version'
complete -c sluice -n $main -s V -d 'version and build options'
complete -c sluice -n $main -s h -d 'summary'

complete -c sluice -n "__fish_seen_subcommand_from $commands" -l help -d 'print a summary'
complete -c sluice -n '__fish_seen_subcommand_from serve' -x -a '(__fish_complete_directories)'
complete -c sluice -n '__fish_seen_subcommand_from serve' -l port -x -d 'port'
complete -c sluice -n '__fish_seen_subcommand_from serve' -l spa -d 'single-page application'
complete -c sluice -n '__fish_seen_subcommand_from serve' -l autoindex -d 'list directories'
complete -c sluice -n '__fish_seen_subcommand_from serve' -l cert -r -F -d 'certificate'
complete -c sluice -n '__fish_seen_subcommand_from serve' -l key -r -F -d 'private key'
complete -c sluice -n '__fish_seen_subcommand_from serve' -l open-to-network -d 'listen on all addresses'
complete -c sluice -n '__fish_seen_subcommand_from serve' -l acme -x -d 'certificate by ACME'
complete -c sluice -n '__fish_seen_subcommand_from serve' -l acme-directory -x -d 'URL of the authority'
complete -c sluice -n '__fish_seen_subcommand_from doctor ctl' -f -l json -d 'print JSON'
complete -c sluice -n '__fish_seen_subcommand_from doctor' -l report -F -d 'write a report for bug reports'
complete -c sluice -n '__fish_seen_subcommand_from doctor' -l seconds -x -d 'duration of the benchmark'
complete -c sluice -n '__fish_seen_subcommand_from doctor' -f -l no-benchmark -d 'leave the benchmark out'
complete -c sluice -n '__fish_seen_subcommand_from docs' -f
complete -c sluice -n '__fish_seen_subcommand_from explain doctor ctl' -s c -r -F -d 'configuration'
complete -c sluice -n '__fish_seen_subcommand_from explain import' -s p -x -a '(__fish_complete_directories)' \
    -d 'where relative paths start'
complete -c sluice -n '__fish_seen_subcommand_from explain' -s g -x -d 'YAML read after the file'
complete -c sluice -n '__fish_seen_subcommand_from explain' -l format -x -a 'text json' -d 'output'
complete -c sluice -n '__fish_seen_subcommand_from lint' -l format -x -a 'text gcc json sarif' -d 'output'
complete -c sluice -n '__fish_seen_subcommand_from fmt' -s w -d 'write the files'
complete -c sluice -n '__fish_seen_subcommand_from fmt' -l check -d 'report unformatted files'
complete -c sluice -n '__fish_seen_subcommand_from fmt' -l diff -d 'print the differences'
complete -c sluice -n '__fish_seen_subcommand_from help' -f -a '(__sluice_help_names)'
complete -c sluice -n '__fish_seen_subcommand_from import' -s o -r -F -d 'output'
complete -c sluice -n '__fish_seen_subcommand_from import' -l report -d 'report in the output'
complete -c sluice -n '__fish_seen_subcommand_from top' -f -l once -d 'print one sample'
complete -c sluice -n '__fish_seen_subcommand_from top' -f -l json -d 'print JSON'
complete -c sluice -n '__fish_seen_subcommand_from top' -l interval -x -d 'seconds between readings'
complete -c sluice -n '__fish_seen_subcommand_from ctl' -f -a '(__sluice_ctl_words)'
complete -c sluice -n '__fish_seen_subcommand_from ctl' -s s -r -F -d 'socket'
