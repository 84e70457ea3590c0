/** The routes for operators: `/healthz`, `/readyz` and `/metrics`. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { secretsEqual } from '#auth/secrets.ts'
import { AppError } from '#errors.ts'
import type { MetricsText } from '#lib/metrics-text.ts'
import { healthy, notReady, ready } from '#model/health.ts'
import { sendJson, sendProblem, sendText } from './responses.ts'

export type OperatorOptions = {
  /** Returns why this node should not receive requests now; empty when it should. */
  readonly notReadyReasons: () => readonly string[]
  /** Returns what operators should know while it should. */
  readonly readyNotes: () => readonly string[]
  readonly metrics: MetricsText
  /** Null if anyone who can reach this server may read the metrics. */
  readonly metricsToken: string | null
  readonly baseUrl: () => string
}

const paths = ['/healthz', '/readyz', '/metrics'] as const
export type OperatorPath = (typeof paths)[number]

const healthyBody = JSON.stringify(healthy)

export function isOperatorPath(path: string): path is OperatorPath {
  return paths.includes(path as OperatorPath)
}

/** Returns the error of a request that may not read `path`; undefined if it may. */
export function operatorProblem(
  path: OperatorPath,
  { headers }: IncomingMessage,
  { metricsToken }: OperatorOptions,
): AppError | undefined {
  if (path !== '/metrics' || metricsToken === null) return undefined
  if (secretsEqual(headers.authorization ?? '', `Bearer ${metricsToken}`)) return undefined
  return new AppError('unauthorized', 'send INLET_METRICS_TOKEN as Authorization: Bearer')
}

export function sendOperatorResponse(
  path: OperatorPath,
  response: ServerResponse,
  isDraining: boolean,
  { notReadyReasons, readyNotes, metrics, baseUrl }: OperatorOptions,
): void {
  switch (path) {
    case '/healthz':
      sendJson(response, 200, healthyBody, { close: isDraining })
      break
    case '/readyz': {
      const reasons = isDraining ? ['shutting down'] : notReadyReasons()
      if (reasons.length === 0) sendJson(response, 200, JSON.stringify(ready(readyNotes())), { close: isDraining })
      else sendProblem(response, notReady(reasons), { baseUrl: baseUrl(), close: isDraining })
      break
    }
    case '/metrics':
      metrics.metrics().then(
        (text) => sendText(response, metrics.contentType, text),
        (error: unknown) => response.destroy(error instanceof Error ? error : undefined),
      )
  }
}
