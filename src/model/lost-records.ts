/**
 * Says what a loss is, in the same words everywhere.
 *
 * Law: a number never stands alone. It is as of a report, and what the node acknowledged after that report is lost as well.
 */
import { countNoun } from '#lib/count-noun.ts'
import type { Loss } from './loss.ts'

export type LostRecords = Pick<Loss, 'records' | 'bytes' | 'reported_at' | 'cause'>

/**
 * Returns for example `up to 5 acknowledged records of shop, as of 2026-11-20T08:12:04.000Z, and what was acknowledged later,`: a subject without its
 * verb. `whose` stands behind the records: ` of shop`.
 */
export function describeLost({ records, bytes, reported_at, cause }: LostRecords, whose = ''): string {
  if (records === 0)
    return `any record${whose === '' ? '' : `${whose},`} acknowledged after ${reported_at} (none was known to wait then)`
  const known = `${describeCount(records, bytes)}${whose}, as of ${reported_at}`
  // The machine had lost its place before it counted its disk.
  return cause === 'left_on_disk' ? known : `${known}, and what was acknowledged later`
}

function describeCount(records: number | null, bytes: number): string {
  if (records !== null) return `up to ${countNoun(records, 'acknowledged record')}`
  // The node could not list its log.
  return `${bytes === 0 ? 'an unknown number' : countNoun(bytes, 'byte')} of acknowledged records`
}

/** Whether the subject takes a verb in the singular. */
export function isSingular({ records, bytes, cause }: LostRecords): boolean {
  return records === 0 || (cause === 'left_on_disk' && (records ?? bytes) === 1)
}
