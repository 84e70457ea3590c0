/** Whether the names of endpoints lead to the nodes that serve them, and to certificates for these names. */
import { once } from 'node:events'
import { connect } from 'node:tls'
import { resolverOf } from '../../tools/services/bind.ts'
import type { Cluster, ClusterEndpoint } from './cluster.ts'
import { type NodeName, nodesOf, ports } from './layout.ts'

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

/** Makes a TLS handshake with each node for each name, and returns what clients would reject. */
export async function findWrongCertificates(cluster: Cluster): Promise<readonly string[]> {
  const each = cluster.endpoints.flatMap(({ ingestHost, region }) =>
    nodesOf(region).flatMap((name) =>
      cluster.host(name).addresses.flatMap((address) =>
        [ports.ingest, ports.mqtt].map(async (port) => {
          const problem = await findHandshakeProblem(cluster, { address, port, ingestHost })
          return problem === undefined ? [] : [`${ingestHost} at ${name} (${address} port ${port}): ${problem}`]
        }),
      ),
    ),
  )
  return (await Promise.all(each)).flat()
}

async function findHandshakeProblem(
  { services }: Cluster,
  { address, port, ingestHost }: { readonly address: string; readonly port: number; readonly ingestHost: string },
): Promise<string | undefined> {
  const socket = connect({
    host: address,
    port,
    servername: ingestHost,
    ca: services.pebble.described.root,
    timeout: handshakeMsMax,
  })
  socket.once('timeout', () => socket.destroy(new Error('no response')))
  try {
    await once(socket, 'secureConnect')
    return undefined
  } catch (error) {
    return String(error)
  } finally {
    socket.destroy()
  }
}
