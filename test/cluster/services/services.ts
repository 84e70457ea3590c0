/** The services around Inlet, each on a host of its own: Postgres with a standby, the name server, the ACME server, the object store. */
import { join } from 'node:path'
import { type Bind, startBind } from '../../../tools/services/bind.ts'
import { startObjectGatewayWithUsers } from '../../../tools/services/gateway-users.ts'
import { type Pebble, startPebble } from '../../../tools/services/pebble.ts'
import type { GatewayDescription } from '../../support/object-gateway.ts'
import { baseDomain, controlNames, type HostName, ports } from '../layout.ts'
import type { Host } from '../network/host.ts'
import type { Network } from '../network/network.ts'
import type { BalancerSettings } from './balancer-child.ts'
import { DatabasePair } from './database.ts'

const balancerProgram = join(import.meta.dirname, 'balancer-child.ts')

export type Services = AsyncDisposable & {
  readonly gateway: GatewayDescription
  readonly database: DatabasePair
  readonly bind: Bind
  readonly pebble: Pebble
}

export async function startServices(hosts: ReadonlyMap<HostName, Host>, network: Network): Promise<Services> {
  const host = (name: HostName): Host => {
    const found = hosts.get(name)
    if (found === undefined) throw new Error(`no host ${name}`)
    return found
  }
  await using started = new AsyncDisposableStack()
  // BIND listens only on addresses that an interface has.
  const dnsPlace = network.kind === 'loopback' ? {} : { place: host('dns').place, port: ports.dns }
  const pairing = DatabasePair.start([host('database-1'), host('database-2')])
  const [objects, bind] = await Promise.all([
    startObjectGatewayWithUsers({ place: host('storage').place, front: network.hub.address }).then((service) => {
      started.defer(() => service.stop())
      return service
    }),
    startBind({ zones: [baseDomain], ...dnsPlace }).then((service) => {
      started.defer(() => service.stop())
      return service
    }),
    pairing.then((pair) => started.use(pair)),
  ])
  const pebble = await startPebble({ nameServer: bind.described.server, place: host('acme').place })
  started.defer(() => pebble.stop())
  startBalancer(host('balancer'), controlNames.map(host), network.hasNames ? 'https' : 'http')
  const kept = started.move()
  return {
    gateway: objects.described,
    database: await pairing,
    bind,
    pebble,
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  }
}

function startBalancer(host: Host, backends: readonly Host[], scheme: 'http' | 'https'): void {
  const settings: BalancerSettings = {
    address: host.address,
    backends: backends.map(({ address }) => address),
    ports: [ports.management, ports.nodeApi],
    healthPort: ports.management,
    direct: controlNames.flatMap((name, index) => {
      const backend = backends[index]?.address
      return backend === undefined ? [] : [{ port: ports.direct[name], backend }]
    }),
    scheme,
  }
  host.spawn(process.execPath, [balancerProgram, JSON.stringify(settings)], { stdio: ['ignore', 'inherit', 'inherit'] })
}
