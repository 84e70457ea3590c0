/** For Node: SIGUSR1 does not open the inspector, which would give every local user who reaches its port the process with its secrets. */
export const disableInspector = '--disable-sigusr1'
