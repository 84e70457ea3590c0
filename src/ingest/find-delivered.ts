import type { FindDelivered } from '#log/log-writer.ts'
import { commitId } from '#model/commit.ts'
import type { Control } from '#node/control-client.ts'
import type { ControlContact } from '#node/control-contact.ts'

export type FindDeliveredOptions = {
  readonly control: Pick<Control, 'findCommits'>
  /** Shows whether this process follows the database of control, or refuses it. */
  readonly contact: Pick<ControlContact, 'mayLackChanges'>
  readonly nodeId: string
}

/**
 * Returns how to ask control which segments of this node were delivered. It throws while a commit that control does not know may have been
 * recorded before the database went back: its segment would be reported lost. A database knows that it went back only once the delivery
 * process, which counts its commits, has reported to it.
 */
export function findDeliveredBy({ control, contact, nodeId }: FindDeliveredOptions): FindDelivered {
  let reportedBefore: number | null | undefined
  return async (segments, signal) => {
    if (contact.mayLackChanges) throw new Error('this process does not follow the configuration of control')
    const idOf = ({ incarnation, seq }: (typeof segments)[number]) => commitId(nodeId, incarnation, seq)
    const { commits, may_lack, reported_at } = await control.findCommits(segments.map(idOf), signal)
    if (reportedBefore === undefined) reportedBefore = reported_at
    if (commits.length < segments.length) {
      if (may_lack === true) throw new Error('commits may be missing in the database of control: run inlet commits rebuild')
      // Control of an earlier release does not say when.
      if (reported_at !== undefined && reported_at === reportedBefore)
        throw new Error('the delivery process has not reported to control since this process started')
    }
    const known = new Set(commits.map(({ id }) => id))
    return segments.filter((segment) => known.has(idOf(segment)))
  }
}
