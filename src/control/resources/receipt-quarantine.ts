/**
 * Says whether the segment of a receipt is in the quarantine of its node.
 *
 * Law: nodes report how many segments are there, and the lowest and the highest seq. So a seq between them may be there or not.
 */
import { namedId } from '#lib/named-id.ts'
import type { LogHolder } from '#store/nodes/log-holder.ts'

/** `unknown`: the node has a quarantine and does not report its seqs. */
export type InQuarantine = 'certain' | 'possible' | 'unknown'

export function findInQuarantine(seq: number, { quarantine }: LogHolder): InQuarantine | undefined {
  if (quarantine === undefined) return undefined
  const { segments, first_seq, last_seq } = quarantine
  if (first_seq === null || last_seq === null) return 'unknown'
  if (seq < first_seq || seq > last_seq) return undefined
  const areAll = segments > last_seq - first_seq
  return areAll || seq === first_seq || seq === last_seq ? 'certain' : 'possible'
}

export function describeQuarantine(
  node_id: string,
  inQuarantine: InQuarantine,
  { name, quarantine, reported_at }: LogHolder,
): string {
  const { segments = 0, first_seq = null, last_seq = null } = quarantine ?? {}
  const node = `node ${namedId(node_id, name)}`
  const count = segments === 1 ? '1 segment is' : `${segments} segments are`
  const others = inQuarantine === 'unknown' ? count : `${segments} of the segments ${first_seq} to ${last_seq} are`
  const fact = inQuarantine === 'certain' ? `is in quarantine on ${node}` : `may be in quarantine on ${node} (${others})`
  const when = reported_at === undefined ? 'as it last reported' : `as it reported at ${reported_at}`
  const next = 'the operator finds out why with `inlet segments list` there, and has to `export` its records and `discard` it'
  return `the segment ${fact}, ${when}, and is not delivered from there: ${next}`
}
