/** The acknowledgement that a sender asks for. */
import { type AckLevel, ackLevelName, ackLevels } from '#model/ack-level.ts'
import { commitWaitLimits } from '#model/limits.ts'
import type { SnapshotEndpoint } from '#model/snapshot.ts'
import { needsCopy } from './copied.ts'
import { Rejection } from './rejection.ts'

/** `waitMs`: how long it waits for the commit, if it asks for that. */
export type AckRequest = { readonly level: AckLevel; readonly waitMs: number }

/** RFC 7240 §4.3. */
const waitPreference = /(?:^|[,;\s])wait\s*=\s*"?(\d{1,6})"?/i

/** `prefer` is a header of RFC 7240, which may say how many seconds to wait. Throws Rejection. */
export function readAckRequest(text: string, prefer: string | undefined): AckRequest {
  const name = text.trim().toLowerCase()
  const level = ackLevels.find((known) => known === name)
  if (level === undefined) throw invalidLevel(`"${text.slice(0, 40)}" is no level; it is ${ackLevels.join(', ')}`)
  return { level, waitMs: readWaitMs(prefer) }
}

/** Returns how long the sender waits for a commit. */
export function readWaitMs(prefer: string | undefined): number {
  const { secondsDefault, secondsMax } = commitWaitLimits
  const asked = waitPreference.exec(prefer ?? '')?.[1]
  return 1000 * Math.min(asked === undefined ? secondsDefault : Number(asked), secondsMax)
}

/** Throws Rejection if records of the endpoint never reach the level. */
export function requireLevel(endpoint: Pick<SnapshotEndpoint, 'copies'>, level: AckLevel | undefined): void {
  if (level === 'copied' && !needsCopy(endpoint))
    throw invalidLevel('the endpoint has one copy; set its copies to 2, or ask for disk or committed')
}

function invalidLevel(reason: string): Rejection {
  return new Rejection('invalid_ack_level', `Inlet-Ack: ${reason}`, { field: ackLevelName })
}
