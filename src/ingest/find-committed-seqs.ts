import type { FindCommittedSeqs } from '#log/log-writer.ts'
import type { Control } from '#node/control-client.ts'
import type { ControlContact } from '#node/control-contact.ts'

export type FindCommittedSeqsOptions = {
  readonly control: Pick<Control, 'fetchCommittedSeqs'>
  /** Shows whether this process follows the database of control, or refuses it. */
  readonly contact: Pick<ControlContact, 'mayLackChanges'>
  readonly nodeId: string
}

/** Returns how to ask control which seqs of this node were committed. It throws for a database that went back: that one may lack commits. */
export function findCommittedSeqsBy({ control, contact, nodeId }: FindCommittedSeqsOptions): FindCommittedSeqs {
  return async (signal) => {
    if (contact.mayLackChanges) throw new Error('this process does not follow the configuration of control')
    return (await control.fetchCommittedSeqs(nodeId, signal)).seqs
  }
}
