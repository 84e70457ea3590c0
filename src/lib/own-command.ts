/** How this Inlet is run: from a clone of its repository, whose sources are TypeScript, or as the package. */
const isClone = import.meta.filename.endsWith('.ts')

/** Returns what to type to run a command of this Inlet, for messages. */
export function ownCommand(command: string): string {
  return isClone ? `npm run inlet -- ${command}` : `inlet ${command}`
}
