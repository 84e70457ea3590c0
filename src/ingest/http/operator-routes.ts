/** The routes for operators: `/healthz`, `/readyz` and `/metrics`. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Registry } from 'prom-client'
import { secretsEqual } from '#auth/secrets.ts'
import { AppError } from '#errors.ts'
import { healthy, notReady } from '#model/health.ts'
import { answerJson, answerProblem, answerText } from './responses.ts'

export type OperatorOptions = {
  /** Reasons why this node should get no requests now; empty when it should. */
  readonly notReadyReasons: () => readonly string[]
  readonly registry: Registry
  /** Null if everybody who reaches this server may read the metrics. */
  readonly metricsToken: string | null
  readonly baseUrl: string
}

const paths = ['/healthz', '/readyz', '/metrics'] as const
export type OperatorPath = (typeof paths)[number]

const healthyBody = JSON.stringify(healthy)

export function isOperatorPath(path: string): path is OperatorPath {
  return paths.includes(path as OperatorPath)
}

/** Why the request may not read `path`; undefined if it may. */
export function operatorProblem(
  path: OperatorPath,
  { headers }: IncomingMessage,
  { metricsToken }: OperatorOptions,
): AppError | undefined {
  if (path !== '/metrics' || metricsToken === null) return undefined
  if (secretsEqual(headers.authorization ?? '', `Bearer ${metricsToken}`)) return undefined
  return new AppError('unauthorized', 'send INLET_METRICS_TOKEN as Authorization: Bearer')
}

export function answerOperator(
  path: OperatorPath,
  response: ServerResponse,
  isDraining: boolean,
  { notReadyReasons, registry, baseUrl }: OperatorOptions,
): void {
  switch (path) {
    case '/healthz':
      answerJson(response, 200, healthyBody, isDraining)
      break
    case '/readyz': {
      const reasons = isDraining ? ['shutting down'] : notReadyReasons()
      if (reasons.length === 0) answerJson(response, 200, healthyBody, isDraining)
      else answerProblem(response, notReady(reasons), { baseUrl, close: isDraining })
      break
    }
    case '/metrics':
      registry.metrics().then(
        (text) => answerText(response, registry.contentType, text),
        (error: unknown) => response.destroy(error instanceof Error ? error : undefined),
      )
  }
}
