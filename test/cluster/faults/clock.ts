import type { ControlName, NodeName } from '../layout.ts'
import { moveClock } from '../programs/host-clock.ts'
import { type Fault, unnoticed } from './fault.ts'

/** The clock of one host is wrong for a while. Nobody may notice. */
export function clock(name: ControlName | NodeName, seconds: number): Fault {
  return {
    ...unnoticed,
    kind: 'clock',
    text: `move the clock of ${name} by ${seconds} s`,
    movesClock: true,
    holdMs: 10_000,
    async begin({ directory }) {
      moveClock(directory, name, seconds)
      return async () => moveClock(directory, name, 0)
    },
  }
}
