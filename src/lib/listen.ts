import type { AddressInfo, Server } from 'node:net'
import type { ListenAddress } from './option-types.ts'

/** Connections that the kernel keeps waiting to be accepted. */
const backlog = 4_096

/** Resolves once the server listens. Rejects if the address cannot be used; the error names the setting of the address. */
export async function listen(server: Server, address: ListenAddress, setting: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const fail = (error: Error) => reject(Object.assign(error, { setting }))
  server.once('error', fail)
  server.listen({ ...address, backlog }, resolve)
  await promise
  server.off('error', fail)
}

/** Returns the address that a server listens at, with the actual port if the configured one is 0. */
export function addressOf(server: Server): ListenAddress {
  const { address, port } = server.address() as AddressInfo
  return { host: address, port }
}
