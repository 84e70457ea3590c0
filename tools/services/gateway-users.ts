import { startObjectGateway } from './object-gateway.ts'
import { startStsFront } from './sts-front.ts'

/** Starts the gateway and its STS front, with the users of the tests: the service, its customer, and a stranger. */
export async function startObjectGatewayWithUsers() {
  const gateway = await startObjectGateway()
  const front = await startStsFront(gateway.url)
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
