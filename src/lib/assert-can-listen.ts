import { once } from 'node:events'
import { createServer } from 'node:net'
import type { ListenAddress } from './option-types.ts'

/**
 * Throws the error of the system if the address cannot be used, with the setting of the address. Nothing listens afterwards. An address
 * that is shared with other processes is not checked.
 */
export async function assertCanListen(address: ListenAddress, setting: string): Promise<void> {
  // The kernel would send connections here that nobody serves.
  if (address.reusePort === true) return
  await using server = createServer()
  server.listen({ ...address })
  try {
    await once(server, 'listening')
  } catch (error) {
    throw Object.assign(error as Error, { setting })
  }
}
