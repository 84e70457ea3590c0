import type { FindDelivered } from '#log/log-writer.ts'
import { commitId } from '#model/commit.ts'
import type { Control } from '#node/control-client.ts'

/**
 * Returns how to ask control which segments of this node were delivered. It throws while a commit that control does not know may have been
 * recorded before the database went back: its segment would be reported lost.
 */
export function findDeliveredBy(control: Pick<Control, 'findCommits'>, nodeId: string): FindDelivered {
  return async (segments, signal) => {
    const idOf = ({ incarnation, seq }: (typeof segments)[number]) => commitId(nodeId, incarnation, seq)
    const { commits, may_lack } = await control.findCommits(segments.map(idOf), signal)
    if (may_lack === true && commits.length < segments.length)
      throw new Error('commits may be missing in the database of control: run inlet commits rebuild')
    const known = new Set(commits.map(({ id }) => id))
    return segments.filter((segment) => known.has(idOf(segment)))
  }
}
