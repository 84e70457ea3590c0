/** Why segments are on the node, as far as the node says so. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Rig } from './rig.ts'

/** Returns the reason by segment, `<log>/<seq>-<incarnation>`. */
export async function listedReasons(rig: Rig): Promise<ReadonlyMap<string, string>> {
  const reasons = new Map<string, string>()
  for (const log of list(rig.wal)) {
    for (const name of list(join(rig.wal, log))) {
      const [, segment] = /^(.+)\.quarantine$/.exec(name) ?? []
      if (segment !== undefined) reasons.set(`${log}/${segment}`, 'quarantined')
    }
  }
  const crashes = join(rig.data, 'node/crashes')
  for (const name of list(crashes)) {
    if (!name.endsWith('.parked.json')) continue
    const { reason } = JSON.parse(readFileSync(join(crashes, name), 'utf8'))
    rig.note(`parked ${name}: ${reason}`)
  }
  return reasons
}

function list(directory: string): readonly string[] {
  try {
    return readdirSync(directory)
  } catch {
    return []
  }
}
