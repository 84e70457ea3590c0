import { expect, test } from 'vitest'
import { aDestination, anEndpointTo, conversionPool, DeliveryNode } from '../support/delivery-node.ts'
import { until } from '../support/until.ts'

/** Returns the functions of the program that are under way, from the newest to the oldest. */
function functionsUnderWay(): readonly string[] {
  const limit = Error.stackTraceLimit
  Error.stackTraceLimit = 100
  const { stack = '' } = new Error('here')
  Error.stackTraceLimit = limit
  return [...stack.matchAll(/^ +at (?:async )?(\S+) .*\/src\//gm)].map(([, name = '']) => name)
}

test('few functions are between the pipeline and the process that converts', async () => {
  const endpoint = anEndpointTo(aDestination())
  await using node = await DeliveryNode.create(endpoint)
  let functions: readonly string[] = []
  node.conversionPool = {
    pids: [],
    run(task, options) {
      functions = functionsUnderWay()
      return conversionPool.run(task, options)
    },
    stop: async () => undefined,
  }
  await node.start()
  await node.seal(endpoint.id, '{"n":1}')
  await until('the commit', () => node.commits.length === 1)
  expect(functions).toEqual([
    'ConversionRunner.run',
    'GroupQueue.work',
    'SegmentBuild.attempt',
    'Conversion.attempt',
    'repeatAttempts',
    'SegmentDelivery.run',
    '#deliver',
  ])
})
