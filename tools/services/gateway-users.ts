import { startObjectGateway } from './object-gateway.ts'
import { startStsFront } from './sts-front.ts'

/** The gateway and the front of its STS, with the users that tests play: the service, its customer, and somebody else. */
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
