import { createInterface } from 'node:readline/promises'
import { UserError } from '#lib/user-error.ts'
import { type CliContext, UsageError } from '../terminal/context.ts'

/** Asks on a terminal. Throws a UserError unless the answer is yes, and a UsageError where nobody can answer. */
export async function confirm({ process: { stderr } }: CliContext, question: string): Promise<void> {
  if (process.stdin.isTTY !== true) throw new UsageError(`${question}. Add --yes to do it`)
  const prompt = createInterface({ input: process.stdin, output: stderr })
  try {
    // Rejects after Ctrl-C and Ctrl-D.
    const answer = await prompt.question(`${question}. Go on? [y/N] `).catch(() => '')
    if (!/^y(es)?$/i.test(answer.trim())) throw new UserError('nothing was changed')
  } finally {
    prompt.close()
  }
}
