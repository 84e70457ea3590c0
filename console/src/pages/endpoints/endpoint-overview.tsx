import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useSearch } from '@tanstack/react-router'
import { type Endpoint, endpointQuery, resumeEndpoint } from '../../api/endpoints.ts'
import { ingestAddressOf, ingestTargetOf } from '../../api/ingest-address.ts'
import { Button } from '../../design/button.tsx'
import { Callout, type CalloutKind } from '../../design/callout.tsx'
import { CodeBlock } from '../../design/code-block.tsx'
import { formatBytes, formatCount, formatDuration } from '../../design/format.ts'
import { Bullets, Card, Columns, Section, Stat } from '../../design/layout.tsx'
import { ButtonLink } from '../../shell/button-link.tsx'
import { EndpointCharts } from '../../shell/endpoint-charts.tsx'
import { RangeTabs } from '../../shell/range-tabs.tsx'
import { Reason } from '../../shell/reason.tsx'
import { useMay } from '../../shell/session.tsx'
import { EndpointLosses } from './endpoint-losses.tsx'
import style from './endpoints.module.css'
import { nextStep } from './next-step.ts'
import { useEndpoint } from './use-endpoint.ts'

/** How it goes, why, and what to do next. */
export function EndpointOverview() {
  const { account, endpoint } = useEndpoint()
  const { range = '1h' } = useSearch({ from: '/signed-in/in/$account/endpoints/$endpoint/' })
  return (
    <div className={style.stack}>
      <StatusReport account={account} endpoint={endpoint} />
      <EndpointLosses account={account} endpoint={endpoint} />
      <Card>
        <Lag endpoint={endpoint} />
      </Card>
      <Section title="Traffic" about="What arrives, how soon it is acknowledged, and how soon it is in the bucket.">
        <RangeTabs range={range} />
        <EndpointCharts endpoint={endpoint.id} range={range} />
      </Section>
      <Section title="Send events" about="Any client of HTTP or MQTT can do it. Each needs an API key of scope ingest.">
        <CodeBlock label="curl" code={exampleOf(endpoint)} />
      </Section>
    </div>
  )
}

const kinds: Readonly<Record<Endpoint['status'], CalloutKind>> = {
  active: 'good',
  deploying: 'note',
  degraded: 'warn',
  failed: 'bad',
  paused: 'note',
  draining: 'note',
}

const titles: Readonly<Record<Endpoint['status'], string>> = {
  active: 'Receiving and delivering events',
  deploying: 'Being set up',
  degraded: 'Receiving events, but something needs attention',
  failed: 'Not receiving events',
  paused: 'Refusing new events',
  draining: 'Being deleted',
}

function StatusReport({ account, endpoint }: { readonly account: string; readonly endpoint: Endpoint }) {
  const mayChange = useMay('member')
  const step = nextStep(endpoint, mayChange)
  return (
    <Callout
      kind={kinds[endpoint.status]}
      title={titles[endpoint.status]}
      action={mayChange && <StepAction account={account} endpoint={endpoint} action={step.action} />}
    >
      {endpoint.status_reasons.length > 0 && (
        <Bullets>
          {endpoint.status_reasons.map((reason) => (
            <li key={reason}>
              <Reason text={reason} />
            </li>
          ))}
        </Bullets>
      )}
      <p>{step.text}</p>
    </Callout>
  )
}

type StepActionProps = {
  readonly account: string
  readonly endpoint: Endpoint
  readonly action: ReturnType<typeof nextStep>['action']
}

function StepAction({ account, endpoint: { id }, action }: StepActionProps) {
  const queries = useQueryClient()
  const resume = useMutation({
    mutationFn: () => resumeEndpoint(id),
    onSuccess: () => queries.invalidateQueries(endpointQuery(account, id)),
  })
  const params = { account, endpoint: id }
  switch (action) {
    case 'test':
      return (
        <ButtonLink size="small" to="/in/$account/endpoints/$endpoint/test" params={params}>
          Send a test event
        </ButtonLink>
      )
    case 'settings':
      return (
        <ButtonLink size="small" to="/in/$account/endpoints/$endpoint/settings" params={params}>
          Choose a destination
        </ButtonLink>
      )
    case 'resume':
      return (
        <Button size="small" busy={resume.isPending} onClick={() => resume.mutate()}>
          Resume endpoint
        </Button>
      )
    case 'destinations':
    case 'wait':
    case 'operator':
      return null
  }
}

function Lag({ endpoint: { lag } }: { readonly endpoint: Endpoint }) {
  const { undelivered_bytes, undelivered_segments, open_segments, parked_segments, quarantined_segments, oldest_age_seconds } =
    lag
  return (
    <Columns minimum={12}>
      <Stat
        label="On its way"
        value={formatBytes(undelivered_bytes)}
        exact={`${formatCount(undelivered_bytes)} bytes`}
        note={`${formatCount(undelivered_segments)} sealed, ${formatCount(open_segments)} open segments`}
      />
      <Stat
        label="Oldest that waits"
        value={oldest_age_seconds === null ? '–' : formatDuration(oldest_age_seconds * 1000)}
        note="since it was sealed"
      />
      <Stat
        label="Set aside"
        value={formatCount(parked_segments + quarantined_segments)}
        note={`${formatCount(parked_segments)} parked, ${formatCount(quarantined_segments)} in quarantine`}
      />
    </Columns>
  )
}

function exampleOf(endpoint: Endpoint): string {
  return `curl -X POST '${ingestAddressOf(ingestTargetOf(endpoint)).url}' \\
  -H 'X-API-Key: ing_live_…' -H 'Content-Type: application/x-ndjson' \\
  -d '{"type":"order","amount":12.5}'`
}
