import { commitId } from '#model/commit.ts'
import type { ControlClient } from '#node/control-client.ts'
import type { WalOptions } from '#wal/wal.ts'

/** Returns how to ask control which segments of this node were delivered. */
export function findDeliveredBy(
  control: Pick<ControlClient, 'findCommits'>,
  nodeId: string,
): NonNullable<WalOptions['findDelivered']> {
  return async (segments, signal) => {
    const idOf = ({ incarnation, seq }: (typeof segments)[number]) => commitId(nodeId, incarnation, seq)
    const known = new Set((await control.findCommits(segments.map(idOf), signal)).map(({ id }) => id))
    return segments.filter((segment) => known.has(idOf(segment)))
  }
}
