/** Proposes completions of a command line, for the scripts of `inlet completion`. */
import { type Application, proposeCompletions } from '@stricli/core'
import { readProfiles } from '../remote/profiles.ts'
import type { CliContext } from '../terminal/context.ts'

/** Options before the name of a command, which Stricli does not know. */
const leading = [
  { completion: '--help', brief: 'show the help of a command' },
  { completion: '--profile', brief: 'use another profile of inlet login' },
  { completion: '--version', brief: 'show the version' },
]

/** Prints a line for each proposal: what to insert, a tab, and what it does. The last of `words` is the one that is being typed. */
export async function printCompletions(
  application: Application<CliContext>,
  words: readonly string[],
  context: CliContext,
): Promise<void> {
  const proposals = await propose(application, words, context).catch(() => [])
  context.process.stdout.write(proposals.map(({ completion, brief }) => `${completion}\t${brief}\n`).join(''))
}

async function propose(application: Application<CliContext>, words: readonly string[], context: CliContext) {
  const [first = '', second] = words
  if (first === '--profile' && second !== undefined) {
    if (words.length > 2) return propose(application, words.slice(2), context)
    const { profiles } = await readProfiles(await context.readEnvironment())
    const names = Object.entries(profiles).filter(([name]) => name.startsWith(second))
    return names.map(([completion, { url }]) => ({ completion, brief: url }))
  }
  if (words.length === 1 && first.startsWith('-')) return leading.filter(({ completion }) => completion.startsWith(first))
  return proposeCompletions(application, words.length === 0 ? [''] : words, context)
}
