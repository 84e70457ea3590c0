/** Deletes files under live processes: an open segment, or what is in the scratch directory. */
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Fault } from '../plan.ts'
import { Random } from '../random.ts'
import type { Rig } from '../rig.ts'
import { findSegments } from '../segments.ts'
import type { Heal } from './heal.ts'

export async function unlink({ what, seed }: Extract<Fault, { kind: 'unlink' }>, rig: Rig): Promise<Heal> {
  const random = new Random(seed)
  if (what === 'scratch') {
    const scratch = join(rig.data, 'node/scratch')
    if (existsSync(scratch))
      for (const name of readdirSync(scratch)) rmSync(join(scratch, name), { recursive: true, force: true })
    return undefined
  }
  // Ingest can save what it wrote only while it lives.
  if (!rig.processes.isRunning('ingest')) return undefined
  const open = findSegments(rig.wal).filter((path) => path.endsWith('.open'))
  if (open.length === 0) return undefined
  const path = random.pick(open)
  rmSync(path, { force: true })
  rig.note(`unlinked ${path}`)
  return undefined
}
