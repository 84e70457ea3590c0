import { type ControlName, controlNames, type NodeName } from '../layout.ts'
import { moveClock } from '../programs/host-clock.ts'
import { renewAll } from './certificates.ts'
import { type Fault, unnoticed } from './fault.ts'

/** The clock of one host is wrong for a while. Nobody may notice. */
export function clock(name: ControlName | NodeName, seconds: number): Fault {
  return {
    ...unnoticed,
    kind: 'clock',
    text: `move the clock of ${name} by ${seconds} s`,
    movesClock: true,
    parts: { breaks: [name], needs: [] },
    holdMs: 10_000,
    async begin({ directory }) {
      moveClock(directory, name, seconds)
      return async () => moveClock(directory, name, 0)
    },
  }
}

/** The ACME server keeps the time. */
export function renewWithWrongClocks(seconds: number): Fault {
  return {
    ...unnoticed,
    kind: 'clock-renewal',
    text: `move the clocks of control by ${seconds} s, and renew all certificates`,
    movesClock: true,
    async begin(cluster) {
      const moveAll = (by: number) => {
        for (const name of controlNames) moveClock(cluster.directory, name, by)
      }
      moveAll(seconds)
      const untilRenewed = await renewAll(cluster)
      return async () => {
        await untilRenewed()
        moveAll(0)
      }
    },
  }
}
