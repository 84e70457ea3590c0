/** Kills everything and puts the disk into a state that a power loss allows. */

import { join } from 'node:path'
import type { Fault } from '../plan.ts'
import { coveredBy } from '../power/covered.ts'
import { losePower } from '../power/power-loss.ts'
import { processNames } from '../processes.ts'
import { Random } from '../random.ts'
import type { Rig } from '../rig.ts'
import type { Heal } from './heal.ts'

export async function power({ seed }: Extract<Fault, { kind: 'power' }>, rig: Rig): Promise<Heal> {
  const journals = await rig.processes.losePower()
  const loss = losePower({ directory: join(rig.data, 'node'), covers: coveredBy(rig.data) }, journals, new Random(seed))
  rig.note(`power loss took ${loss.names} names, and ${loss.sectors} sectors of ${loss.files} files`)
  rig.processes.start(processNames)
  return undefined
}
