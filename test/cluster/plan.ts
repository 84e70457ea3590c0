/** Draws what happens in a round from its seed. */
import type { Random } from '../torture/random.ts'
import { renewCertificates, spoilCertificate, stopAcme } from './faults/certificates.ts'
import { clock, renewWithWrongClocks } from './faults/clock.ts'
import { cutControl, failOver, killControl, restartDatabase } from './faults/control.ts'
import type { Fault, FaultKind } from './faults/fault.ts'
import { loseNode } from './faults/lost-node.ts'
import { cutNode, isolateNode, killNodes, pauseNode, restartNodes } from './faults/nodes.ts'
import { deleteRecords, spoilRecord } from './faults/records.ts'
import { cutStorage, killNameServer, pauseNameServer } from './faults/services.ts'
import { canOverlap } from './faults/situation.ts'
import { controlNames, nodeNames, nodesOf, regions } from './layout.ts'
import type { NetworkKind } from './network/network.ts'
import { canMoveClocks } from './programs/host-clock.ts'

const draw: Readonly<Record<FaultKind, (random: Random) => Fault>> = {
  'kill-node': (random) => killNodes('kill-node', [random.pick(nodesOf('fra'))]),
  'kill-region': (random) => killNodes('kill-region', nodesOf(random.pick(regions))),
  'pause-node': (random) => pauseNode(random.pick(nodeNames)),
  'cut-node': (random) => cutNode(random.pick(nodeNames)),
  'isolate-node': (random) => isolateNode(random.pick(nodeNames)),
  'restart-nodes': () => restartNodes('fra'),
  'lose-node': (random) => loseNode(random.pick(['fra-1', 'fra-2'])),
  'kill-control': (random) => killControl(random.pick(controlNames)),
  'cut-control': (random) => cutControl(random.pick(controlNames)),
  'restart-database': (random) => restartDatabase(random.between(5, 15) * 1_000),
  'fail-over': () => failOver(),
  'cut-storage': (random) => cutStorage(random.some(nodeNames)),
  'kill-dns': () => killNameServer(),
  'pause-dns': () => pauseNameServer(),
  'delete-record': (random) => deleteRecords(drawName(random)),
  'wrong-record': (random) => spoilRecord(drawName(random)),
  'renew-certificates': () => renewCertificates(),
  'stop-acme': (random) => stopAcme(random.pick(['stop', 'cut'])),
  'expired-certificate': (random) => spoilCertificate('expired-certificate', random.pick(['fra-1', 'fra-2'])),
  'wrong-certificate': (random) => spoilCertificate('wrong-certificate', random.pick(['fra-1', 'fra-2'])),
  'clock-renewal': (random) => renewWithWrongClocks(random.pick([-3_600, 3_600])),
  clock: (random) => clock(random.pick([...controlNames, ...nodeNames]), random.pick([-3_600, -60, 60, 3_600])),
}

const drawName = (random: Random) => ({ region: random.pick(regions), protocol: random.pick(['http', 'mqtt'] as const) })

export type PlanOptions = {
  readonly kinds: readonly FaultKind[]
  /** How many pairs of faults that overlap come after the others. */
  readonly pairs: number
  readonly network: NetworkKind
}

/** A pair that fits is found long before that, unless there is none. */
const drawsMax = 1_000

/** Each kind once, in an order and with targets that the seed decides, and then the pairs. */
export function drawPlan(random: Random, { kinds, pairs, network }: PlanOptions): readonly (readonly Fault[])[] {
  const isPossible = ({ cutsNetwork = false, movesClock = false }: Fault) =>
    (!cutsNetwork || network === 'namespaces') && (!movesClock || canMoveClocks)
  const faults = kinds.map((kind) => draw[kind](random)).filter(isPossible)
  const plan: (readonly Fault[])[] = faults
    .map((fault) => ({ fault, order: random.share() }))
    .toSorted((one, other) => one.order - other.order)
    .map(({ fault }) => [fault])
  const planned = new Set<string>()
  for (let draws = 0; planned.size < pairs && draws < drawsMax; draws += 1) {
    const [one, other] = [draw[random.pick(kinds)](random), draw[random.pick(kinds)](random)]
    const kindsOfPair = [one.kind, other.kind].toSorted().join()
    if (![one, other].every(isPossible) || !canOverlap(one, other) || planned.has(kindsOfPair)) continue
    planned.add(kindsOfPair)
    plan.push([one, other])
  }
  return plan
}
