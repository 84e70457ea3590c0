import { errorMessage } from '#lib/error-message.ts'
import { until } from '../../support/until.ts'
import { type ControlName, controlNames, type NodeName, nodeNames } from '../layout.ts'
import { moveClock } from '../programs/host-clock.ts'
import { renewAll } from './certificates.ts'
import { type Fault, unnoticed } from './fault.ts'

/** A heartbeat asks control for the time every two seconds. */
const noticeMsMax = 8_000

/** The clock of one host is wrong for a while. Nobody may notice, but a node says so. */
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
    async check(cluster) {
      const [node] = nodeNames.filter((each) => each === name)
      if (node === undefined) return []
      const isSaid = async () => (await cluster.reasonsOf(cluster.nodeId(node))).some((reason) => reason.includes('clock'))
      return until(`${name} to say that its clock is wrong`, isSaid, noticeMsMax).then(
        () => [],
        (error) => [errorMessage(error)],
      )
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
