import { once } from 'node:events'
import { createServer } from 'node:net'
import type { ListenAddress } from './option-types.ts'

/** Throws the error of the system if the address cannot be used, with the setting of the address. Nothing listens afterwards. */
export async function assertCanListen(address: ListenAddress, setting: string): Promise<void> {
  await using server = createServer()
  server.listen({ ...address })
  try {
    await once(server, 'listening')
  } catch (error) {
    throw Object.assign(error as Error, { setting })
  }
}
