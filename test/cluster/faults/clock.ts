import { errorMessage } from '#lib/error-message.ts'
import { until } from '../../support/until.ts'
import type { Cluster } from '../cluster.ts'
import { type ControlName, controlNames, type NodeName, nodeNames } from '../layout.ts'
import { storeRecords } from '../load/direct.ts'
import { moveClock } from '../programs/host-clock.ts'
import { renewAll } from './certificates.ts'
import { type Fault, unnoticed } from './fault.ts'

/** A heartbeat asks control for the time every two seconds. */
const noticeMsMax = 8_000
/** Segments that were sealed just before may be committed later, and clocks of one machine are read at different moments. */
const sealedBeforeMs = 30_000
const toleranceMs = 2_000

/** The clock of one host is wrong for a while. Nobody may notice, but a node says so. */
export function clock(name: ControlName | NodeName, seconds: number): Fault {
  return {
    ...unnoticed,
    kind: 'clock',
    text: `move the clock of ${name} by ${seconds} s`,
    movesClock: true,
    parts: { breaks: [name], needs: [] },
    holdMs: 10_000,
    async begin(cluster) {
      moveClock(cluster.directory, name, seconds)
      return () => setRight(cluster, [name])
    },
    async check(cluster) {
      const [node] = nodeNames.filter((each) => each === name)
      return node === undefined ? [] : findSilenceAboutClock(cluster, node)
    },
  }
}

/**
 * Waits until the nodes have seen it. One whose clock goes forward may have stood still: it asks control before it acknowledges anything more. If
 * it were cut off then, its clients would notice. Control may be away itself: then nobody asks.
 */
async function setRight(cluster: Cluster, names: readonly (ControlName | NodeName)[]): Promise<void> {
  for (const name of names) moveClock(cluster.directory, name, 0)
  const nodes = nodeNames.filter((node) => names.includes(node))
  for (const name of nodes) {
    const isSeen = async () => !(await saysThatItIsWrong(cluster, name))
    await until(`${name} to see that its clock is right`, isSeen, noticeMsMax).catch(() => undefined)
  }
}

async function saysThatItIsWrong(cluster: Cluster, name: NodeName): Promise<boolean> {
  return (await cluster.reasonsOf(cluster.nodeId(name))).some((reason) => reason.includes('clock'))
}

async function findSilenceAboutClock(cluster: Cluster, name: NodeName): Promise<readonly string[]> {
  return until(`${name} to say that its clock is wrong`, () => saysThatItIsWrong(cluster, name), noticeMsMax).then(
    () => [],
    (error) => [errorMessage(error)],
  )
}

export type Skew = { readonly name: ControlName | NodeName; readonly seconds: number }

/**
 * The clocks of all hosts differ from each other, and a node starts by a wrong one. What is sealed has the right time all the same. That clock
 * must be ahead: to one that is behind, a certificate of control that was renewed just now is not valid yet.
 */
export function skewClocks(started: Skew & { readonly name: NodeName }, others: readonly Skew[]): Fault {
  const skews = [started, ...others]
  const restarted = started.name
  let beganAt = 0
  const known = new Set<string>()
  return {
    ...unnoticed,
    kind: 'skewed-clocks',
    text: `move the clocks of ${skews.map(({ name, seconds }) => `${name} by ${seconds} s`).join(', ')}, and restart ${restarted}`,
    movesClock: true,
    holdMs: 10_000,
    async begin(cluster) {
      for (const { id } of await listCommits(cluster)) known.add(id)
      beganAt = Date.now()
      for (const { name, seconds } of skews) moveClock(cluster.directory, name, seconds)
      await cluster.program(restarted).stop()
      cluster.program(restarted).start()
      await cluster.untilReady(restarted)
      await storeRecords(cluster, restarted)
      return () =>
        setRight(
          cluster,
          skews.map(({ name }) => name),
        )
    },
    async check(cluster) {
      const problems = await Promise.all(nodeNames.map((name) => findSilenceAboutClock(cluster, name)))
      const made = (await listCommits(cluster)).filter(({ id }) => !known.has(id))
      const [from, to] = [beganAt - sealedBeforeMs, Date.now() + toleranceMs]
      const wrong = made.filter(({ sealed_at, uploaded_at }) =>
        [sealed_at, uploaded_at].some((at) => !isBetween(Date.parse(at), from, to)),
      )
      return [
        ...problems.flat(),
        ...wrong.map(
          ({ id, sealed_at, uploaded_at }) => `commit ${id} was sealed at ${sealed_at}, and uploaded at ${uploaded_at}`,
        ),
        ...(made.length === 0 ? ['nothing was delivered while the clocks were wrong'] : []),
      ]
    },
  }
}

function isBetween(at: number, from: number, to: number): boolean {
  return at >= from && at <= to
}

async function listCommits({ management, endpoints }: Cluster) {
  return (await Promise.all(endpoints.map(({ id }) => management.commits(id)))).flat()
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
