/*
 * The command that replaces the running server by another version.
 */
#ifndef COMMAND_COMMAND_UPGRADE_H
#define COMMAND_COMMAND_UPGRADE_H

/*
 * Has the server with this pid file start its executable again, waits until that serves, and ends the old one
 * gracefully. If the new one fails, the old one continues. Returns the exit status, after one line of the result.
 */
int command_upgrade(const char *pid_path);

#endif
