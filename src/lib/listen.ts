import type { AddressInfo, Server } from 'node:net'
import { ingestLimits } from '#ingest/gate/limits.ts'
import type { ListenAddress } from '#lib/option-types.ts'

/** Resolves once the server listens. Rejects if the address cannot be used; the error names the setting of the address. */
export async function listen(server: Server, address: ListenAddress, setting: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const fail = (error: Error) => reject(Object.assign(error, { setting }))
  server.once('error', fail)
  server.listen({ ...address, backlog: ingestLimits.listenBacklog }, resolve)
  await promise
  server.off('error', fail)
}

/** Returns the address that a server listens at, with the actual port if the configured one is 0. */
export function addressOf(server: Server): ListenAddress {
  const { address, port } = server.address() as AddressInfo
  return { host: address, port }
}
