import type { LeftOnDisk, LeftRecorded } from '#model/left-on-disk.ts'
import { type FormerMachine, recordLeftOnDisk } from '#store/commits/left-on-disk.ts'
import { transact } from '#store/store.ts'
import type { ControlContext } from '../context.ts'

export type LeftOnDisks = ReturnType<typeof leftOnDiskService>

/** Records what machines say that lost their place: what is on their disks and nowhere else. */
export function leftOnDiskService({ store, clock, logger }: Pick<ControlContext, 'store' | 'clock' | 'logger'>) {
  return {
    async record(machine: FormerMachine, { segments }: LeftOnDisk): Promise<LeftRecorded> {
      const losses = await transact(store, (db) => recordLeftOnDisk(db, machine, segments, clock.now()))
      const { node_id } = machine
      if (losses > 0) logger.warn({ node_id, losses }, 'a node that lost its place has records that were not delivered')
      return { losses }
    },
  }
}
