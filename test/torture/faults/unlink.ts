/** Deletes files under live processes: an open segment, a commit that waits for control, or what is in the scratch directory. */
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { markerPaths } from '../bucket-contents.ts'
import type { Fault } from '../plan.ts'
import { Random } from '../random.ts'
import type { Rig } from '../rig.ts'
import { findSegments, findWaitingCommits } from '../segments.ts'
import type { Heal } from './heal.ts'

/** Time for ingest to write the frames again. The next group commit notices, and the clients send all the time. */
const rescueMsMax = 10_000

export async function unlink({ what, seed }: Extract<Fault, { kind: 'unlink' }>, rig: Rig): Promise<Heal> {
  if (what === 'scratch') {
    const scratch = join(rig.data, 'node/scratch')
    if (existsSync(scratch))
      for (const name of readdirSync(scratch)) rmSync(join(scratch, name), { recursive: true, force: true })
    return undefined
  }
  if (what === 'outbox entry') {
    const waiting = findWaitingCommits(rig.data)
    const path = waiting.length === 0 ? undefined : new Random(seed).pick(waiting)
    rig.note(path === undefined ? 'no commit waits for control' : `unlinked ${path}`)
    if (path !== undefined) rmSync(path, { force: true })
    return undefined
  }
  // Only the process has the bytes now: a kill or a broken disk in this moment would lose them for good.
  const open = findSegments(rig.wal).filter((path) => path.endsWith('.open') && isWritten(rig, path))
  if (!rig.processes.isHealthy('ingest') || open.length === 0) {
    rig.note('no open segment to unlink, or ingest is not healthy')
    return undefined
  }
  const path = new Random(seed).pick(open)
  rmSync(path, { force: true })
  rig.note(`unlinked ${path}`)
  const deadline = performance.now() + rescueMsMax
  while (!isRescued(rig, path) && performance.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 20))
  rig.note(isRescued(rig, path) ? `rescued ${path}` : `not rescued within ${rescueMsMax / 1000} s: ${path}`)
  return undefined
}

/** Whether somebody sends to the log. Without new data, nothing looks at the file. */
function isWritten(rig: Rig, path: string): boolean {
  return rig.living.some(({ id }) => id === basename(dirname(path)))
}

/** Whether the segment was sealed under its name, or is delivered already. */
function isRescued(rig: Rig, path: string): boolean {
  const [seq = '', incarnation = ''] = basename(path, '.open').split('-')
  const marker = `-${incarnation}-${seq}.json`
  return (
    existsSync(path.replace(/open$/, 'wal')) ||
    markerPaths(rig.buckets, basename(dirname(path))).some((name) => name.endsWith(marker))
  )
}
