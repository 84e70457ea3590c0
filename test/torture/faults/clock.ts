/** The clock of the machine jumps, for all processes, and jumps back later. */
import type { Fault } from '../plan.ts'
import { processNames } from '../processes.ts'
import type { Rig } from '../rig.ts'
import type { Heal } from './heal.ts'

export function clock({ jumpMs }: Extract<Fault, { kind: 'clock' }>, { processes }: Rig): Heal {
  const jump = (ms: number) =>
    processes.steer(processNames, (steering) => ({ ...steering, clockOffsetMs: steering.clockOffsetMs + ms }))
  jump(jumpMs)
  return () => jump(-jumpMs)
}
