import type { Fault } from '../plan.ts'
import type { Rig } from '../rig.ts'
import { clock } from './clock.ts'
import { disk } from './disk.ts'
import { drain } from './drain.ts'
import { flip } from './flip.ts'
import type { Heal } from './heal.ts'
import { bucket, network, noise } from './outside.ts'
import { power } from './power.ts'
import { kill, killConversions, pause, restart } from './processes.ts'
import { settings } from './settings.ts'
import { unlink } from './unlink.ts'

/** Begins a fault. Returns what ends it. */
export async function inject(fault: Fault, rig: Rig): Promise<Heal> {
  switch (fault.kind) {
    case 'kill':
      return await kill(fault, rig)
    case 'conversion':
      return killConversions(rig)
    case 'pause':
      return pause(fault, rig)
    case 'restart':
      return restart(fault, rig)
    case 'power':
      return await power(fault, rig)
    case 'disk':
      return disk(fault, rig)
    case 'clock':
      return clock(fault, rig)
    case 'flip':
      return flip(fault, rig)
    case 'unlink':
      return await unlink(fault, rig)
    case 'settings':
      return settings(fault, rig)
    case 'drain':
      return drain(fault, rig)
    case 'bucket':
      return bucket(fault, rig)
    case 'network':
      return network(fault, rig)
    case 'noise':
      return noise(fault, rig)
  }
}
