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

/** Each kind once, in an order and with targets that the seed decides. */
export function drawPlan(random: Random, kinds: readonly FaultKind[], network: NetworkKind): readonly Fault[] {
  const faults = kinds
    .map((kind) => draw[kind](random))
    .filter(
      ({ cutsNetwork = false, movesClock = false }) =>
        (!cutsNetwork || network === 'namespaces') && (!movesClock || canMoveClocks),
    )
  return faults
    .map((fault) => ({ fault, order: random.share() }))
    .toSorted((one, other) => one.order - other.order)
    .map(({ fault }) => fault)
}
