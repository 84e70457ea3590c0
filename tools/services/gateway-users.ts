import { startObjectGateway } from './object-gateway.ts'
import type { Place } from './processes.ts'
import { startStsFront } from './sts-front.ts'

/**
 * Starts the gateway and its STS front, with the users of the tests: the service, its customer, and a stranger. The front is part of this
 * process, at the address `front`.
 */
export async function startObjectGatewayWithUsers({
  place,
  front: address,
}: {
  readonly place?: Place
  readonly front?: string
} = {}) {
  const gateway = await startObjectGateway(place)
  const front = await startStsFront(gateway.url, address)
  const stop = async () => {
    await front.stop()
    await gateway.stop()
  }
  try {
    const service = await gateway.createUser('inlet')
    const customer = await gateway.createUser('customer', { admin: true })
    const stranger = await gateway.createUser('stranger')
    const { url, kmsKeyArn } = gateway
    return { described: { url, stsUrl: front.url, kmsKeyArn, service, customer, stranger }, stop }
  } catch (error) {
    await stop()
    throw error
  }
}
