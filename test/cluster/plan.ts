/** Draws what happens in a round from its seed. */
import type { Random } from '../torture/random.ts'
import { worsenLink } from './faults/bad-link.ts'
import { renewCertificates, spoilCertificate, stopAcme } from './faults/certificates.ts'
import { clock, renewWithWrongClocks, skewClocks } from './faults/clock.ts'
import { cutControl, killControl, stopControl } from './faults/control.ts'
import { adoptCopy } from './faults/copied-disk.ts'
import { failOver, restartDatabase, returnOldPrimary } from './faults/database.ts'
import type { Fault, FaultKind } from './faults/fault.ts'
import { loseCopied } from './faults/lost-copied.ts'
import { loseDisk } from './faults/lost-disk.ts'
import { loseNode } from './faults/lost-node.ts'
import { cutNode, isolateNode, killNodes, pauseNode, restartInTurn, restartNodes } from './faults/nodes.ts'
import { deleteRecords, spoilRecord } from './faults/records.ts'
import { cutStorage, killNameServer, pauseNameServer } from './faults/services.ts'
import { canOverlap } from './faults/situation.ts'
import { thawNode } from './faults/thawed-node.ts'
import { controlNames, nodeNames, nodesOf, regions } from './layout.ts'
import { canWorsenLinks } from './network/link-quality.ts'
import type { NetworkKind } from './network/network.ts'
import { canMoveClocks } from './programs/host-clock.ts'

type Draw = (random: Random, options: Pick<PlanOptions, 'controlDownMs'>) => Fault

const draw: Readonly<Record<FaultKind, Draw>> = {
  'kill-node': (random) => killNodes('kill-node', [random.pick(nodesOf('fra'))]),
  'kill-region': (random) => killNodes('kill-region', nodesOf(random.pick(regions))),
  'pause-node': (random) => pauseNode(random.pick(nodeNames)),
  'cut-node': (random) => cutNode(random.pick(nodeNames)),
  'isolate-node': (random) => isolateNode(random.pick(nodeNames)),
  'restart-nodes': () => restartNodes('fra'),
  'rolling-restart': (random) =>
    restartInTurn('rolling-restart', drawOrder(random, controlNames), drawOrder(random, nodesOf('fra'))),
  'lose-node': (random) => loseNode(random.pick(['fra-1', 'fra-2'])),
  'lose-disk': (random) => loseDisk(random.pick(['fra-1', 'fra-2'])),
  'lose-copied': (random) => loseCopied(random.pick(['fra-1', 'fra-2'])),
  'thaw-node': (random) => thawNode(random.pick(['fra-1', 'fra-2'])),
  'adopt-copy': (random) => adoptCopy(random.pick(['fra-1', 'fra-2']), random.pick(['control', 'control and the object store'])),
  'kill-control': (random) => killControl(random.pick(controlNames)),
  'cut-control': (random) => cutControl(random.pick(controlNames)),
  'no-control': (_, { controlDownMs }) => stopControl(controlDownMs),
  'restart-database': (random) => restartDatabase(random.between(5, 15) * 1_000),
  'fail-over': () => failOver(),
  'old-primary': (random) => returnOldPrimary(random.pick(controlNames)),
  'cut-storage': (random) => cutStorage(random.some(nodeNames)),
  'cut-one-way': (random) => drawOneWay(random),
  'bad-link': (random) => worsenLink(random.pick(badLinks), random.pick(qualities)),
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
  'skewed-clocks': (random) => {
    const restarted = random.pick(nodesOf('fra'))
    const others = [...controlNames, ...nodeNames].filter((name) => name !== restarted)
    const offsets = drawOrder(random, [-3_600, -60, 45, 600])
    return skewClocks(
      { name: restarted, seconds: 3_600 },
      others.map((name, index) => ({ name, seconds: offsets[index] ?? 0 })),
    )
  },
}

/** Hosts whose links carry what the cluster does all the time. */
const badLinks = [...nodeNames, ...controlNames, 'database-1', 'database-2'] as const
const qualities = [
  { kilobitsPerSecond: 4_000, lossPercent: 3 },
  { kilobitsPerSecond: 8_000, lossPercent: 5 },
] as const

function drawOneWay(random: Random): Fault {
  const way = random.pick(['out', 'in'] as const)
  const cuts = [
    () => cutNode(random.pick(nodeNames), way),
    () => cutControl(random.pick(controlNames), way),
    () => cutStorage([random.pick(nodeNames)], way),
  ]
  return { ...random.pick(cuts)(), kind: 'cut-one-way' }
}

function drawOrder<T>(random: Random, items: readonly T[]): readonly T[] {
  return items
    .map((item) => ({ item, order: random.share() }))
    .toSorted((one, other) => one.order - other.order)
    .map(({ item }) => item)
}

const drawName = (random: Random) => ({ region: random.pick(regions), protocol: random.pick(['http', 'mqtt'] as const) })

export type PlanOptions = {
  readonly kinds: readonly FaultKind[]
  /** How many pairs of faults that overlap come after the others. */
  readonly pairs: number
  readonly network: NetworkKind
  /** For how long `no-control` lasts. */
  readonly controlDownMs: number
}

/** A pair that fits is found long before that, unless there is none. */
const drawsMax = 1_000

/** Each kind once, in an order and with targets that the seed decides, and then the pairs. */
export function drawPlan(random: Random, { kinds, pairs, network, ...options }: PlanOptions): readonly (readonly Fault[])[] {
  const isPossible = ({ cutsNetwork = false, movesClock = false, worsensLink = false }: Fault) =>
    (!cutsNetwork || network === 'namespaces') && (!movesClock || canMoveClocks) && (!worsensLink || canWorsenLinks)
  const faults = kinds.map((kind) => draw[kind](random, options)).filter(isPossible)
  const plan: (readonly Fault[])[] = drawOrder(random, faults).map((fault) => [fault])
  const planned = new Set<string>()
  for (let draws = 0; planned.size < pairs && draws < drawsMax; draws += 1) {
    const [one, other] = [draw[random.pick(kinds)](random, options), draw[random.pick(kinds)](random, options)]
    const kindsOfPair = [one.kind, other.kind].toSorted().join()
    if (![one, other].every(isPossible) || !canOverlap(one, other) || planned.has(kindsOfPair)) continue
    planned.add(kindsOfPair)
    plan.push([one, other])
  }
  return plan
}
