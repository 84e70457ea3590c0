/**
 * Identifies the database, and the state of it, that a configuration is from.
 *
 * Law: within one generation of a database the epoch only increases, and an epoch has one version. A generation ends when an operator says that
 * the database may be another one than before: after a restore, or with `inlet database accept`. Generations are times, so a later one is higher,
 * also that of another database. The first one of each database is 0: nobody said yet that it may replace another.
 */
import { z } from 'zod'
import { Id } from './id.ts'

export const DatabasePosition = z.object({
  /** Made with the database. A copy has it, too. */
  database: Id,
  generation: z.int().min(0),
  epoch: z.int().min(0),
  /** Random, of the epoch. */
  version: z.string().max(64),
})
export type DatabasePosition = z.infer<typeof DatabasePosition>

/** The position that a node has, and whether it refused another one since then. */
export type KeptPosition = { readonly position: DatabasePosition; readonly isRefusing: boolean }

/**
 * Returns why a node that has one configuration must not apply another, or undefined if it may. A node that refused once follows only a later
 * generation, or the very state that it has: the epochs of a database that went back grow again, and mean something else.
 */
export function findRollback({ position: kept, isRefusing }: KeptPosition, offered: DatabasePosition): string | undefined {
  const { database, generation, epoch, version } = offered
  if (generation > kept.generation) return undefined
  if (database !== kept.database) return `control has another database, and nobody said that it replaces the one before`
  if (generation < kept.generation) return 'the database of control is a copy from before its last restore'
  const isSame = epoch === kept.epoch && version === kept.version
  if (isSame || (epoch > kept.epoch && !isRefusing)) return undefined
  return `the database of control went back from epoch ${kept.epoch} to an older state, which is now at epoch ${epoch}`
}
