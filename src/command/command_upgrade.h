/*
 * The command that replaces the running server by another version.
 */
#ifndef COMMAND_COMMAND_UPGRADE_H
#define COMMAND_COMMAND_UPGRADE_H

/*
 * Makes the server with this pid file start its executable again, waits until the new server accepts connections, and
 * terminates the old one gracefully. If the new one fails, the old one continues. Prints one line with the result, and
 * returns the exit status.
 */
int command_upgrade(const char *pid_path);

#endif
