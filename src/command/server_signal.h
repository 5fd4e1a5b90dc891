/*
 * The signals of `-s`, to the running server that a pid file names.
 */
#ifndef COMMAND_SERVER_SIGNAL_H
#define COMMAND_SERVER_SIGNAL_H

/* Sends the signal `number`. Returns the process id of the server, or 0 after an error message. */
long server_signal(const char *pid_path, int number);
/*
 * Makes the server start its executable again, waits until the new server accepts connections, and terminates the old
 * one gracefully. If the new one fails, the old one continues. Prints one line with the result, and returns the exit
 * status.
 */
int server_upgrade(const char *pid_path);

#endif
