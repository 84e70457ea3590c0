/** Whether the names of endpoints lead to the nodes that serve them, and to certificates for these names. */
import { resolverOf } from '../../tools/services/bind.ts'
import { handshake } from '../support/handshake.ts'
import { within } from '../support/within.ts'
import type { Cluster, ClusterEndpoint } from './cluster.ts'
import { controlHost, controlNames, type HostName, type NodeName, nodesOf, ports } from './layout.ts'

const handshakeMsMax = 3_000

/** Returns which records in the zone differ from what they should be. */
export async function findWrongRecords(
  cluster: Cluster,
  servingOf: (endpoint: ClusterEndpoint) => readonly NodeName[],
): Promise<readonly string[]> {
  const resolver = resolverOf(cluster.services.bind.described)
  const each = cluster.endpoints.map(async (endpoint) => {
    const serving = servingOf(endpoint)
    // The last addresses stay if no node serves.
    if (serving.length === 0) return []
    const wanted = serving.flatMap((name) => cluster.host(name).addresses).toSorted()
    const look = (looking: Promise<string[]>) =>
      looking.catch((error: NodeJS.ErrnoException) => (error.code === 'ENODATA' ? [] : [error.code]))
    const name = endpoint.ingestHost
    const found = (await Promise.all([look(resolver.resolve4(name)), look(resolver.resolve6(name))])).flat().toSorted()
    return found.join() === wanted.join()
      ? []
      : [`${name} (${endpoint.region}) leads to ${found.join(', ')}, not to ${wanted.join(', ')}`]
  })
  return (await Promise.all(each)).flat()
}

/** Makes a TLS handshake with each node for each name, and with control, and returns what clients would reject. */
export async function findWrongCertificates(cluster: Cluster): Promise<readonly string[]> {
  const each = listPlaces(cluster).map(async (place) => {
    const served = await readSerial(cluster, place)
    return served instanceof Error ? [`${place.text}: ${served.message}`] : []
  })
  return (await Promise.all(each)).flat()
}

/** Returns the serial number of what is served at each place, if clients accept it. */
export async function listServedCertificates(cluster: Cluster): Promise<ReadonlyMap<string, string>> {
  const each = listPlaces(cluster).map(async (place) => {
    const served = await readSerial(cluster, place)
    return served instanceof Error ? [] : [[place.text, served] as const]
  })
  return new Map((await Promise.all(each)).flat())
}

/** Where clients of a name connect. */
type Place = { readonly text: string; readonly address: string; readonly port: number; readonly servername: string }

function listPlaces(cluster: Cluster): readonly Place[] {
  const placesAt = (name: HostName, servername: string, portsOfHost: readonly number[]): readonly Place[] =>
    cluster
      .host(name)
      .addresses.flatMap((address) =>
        portsOfHost.map((port) => ({ text: `${servername} at ${name} (${address} port ${port})`, address, port, servername })),
      )
  // Control listens for IPv4 only.
  const ofControl = controlNames.map((name) => {
    const { address } = cluster.host(name)
    return { text: `${controlHost} at ${name}`, address, port: ports.management, servername: controlHost }
  })
  return [
    ...(cluster.network.hasNames ? ofControl : []),
    ...cluster.endpoints.flatMap(({ ingestHost, region }) =>
      nodesOf(region).flatMap((name) => placesAt(name, ingestHost, [ports.ingest, ports.mqtt])),
    ),
  ]
}

async function readSerial({ services }: Cluster, { address: host, port, servername }: Place): Promise<string | Error> {
  try {
    const { serial } = await within(handshakeMsMax, handshake(port, { host, servername, ca: services.pebble.described.root }))
    return serial
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error))
  }
}
