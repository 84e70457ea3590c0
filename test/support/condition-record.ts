import { AppError } from '#errors.ts'
import type { Column } from '#model/definition.ts'
import { compileView } from '#views/compile.ts'
import { countEach } from './decide.ts'

/** Columns for tests of conditions, and a record that has a value for each. */
export const columns: readonly Column[] = [
  { name: 'n', type: 'DOUBLE', path: '$.n' },
  { name: 'i', type: 'BIGINT', path: '$.i' },
  { name: 's', type: 'VARCHAR', path: '$.s' },
  { name: 't', type: 'TIMESTAMP', path: '$.t' },
  { name: 'l', type: 'VARCHAR[]', path: '$.l' },
]
export const record = JSON.stringify({ n: -2.5, i: 7, s: ' Abc ', t: '2026-11-20T08:15:30.5Z', l: ['a', 'b'] })

/** Returns the message with which a new condition is rejected; undefined if it is accepted. */
export async function refusal(condition: string, given: readonly Column[] = columns): Promise<string | undefined> {
  try {
    await compileView({ columns: [...given], filters: [{ condition }] }, { isNew: true })
    return undefined
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    return error.errors?.[0]?.message
  }
}

/** Returns the conditions that do not accept this many of the records and drop the others. */
export async function notAccepting(
  conditions: readonly string[],
  of: readonly Column[],
  records: readonly string[],
  accepted: number,
): Promise<readonly string[]> {
  const definitions = conditions.map((condition) => ({ columns: [...of], filters: [{ condition }] }))
  const counts = await countEach(definitions, records)
  return conditions.filter((_, index) => {
    const found = counts[index]
    return found?.accepted !== accepted || found.dropped !== records.length - accepted
  })
}
