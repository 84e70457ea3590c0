import { useNavigate } from '@tanstack/react-router'
import { lazy, Suspense } from 'react'
import type { Endpoint } from '../../api/endpoints.ts'
import { SelectField } from '../../design/field.tsx'
import { Section } from '../../design/layout.tsx'
import { ChartPlaceholders } from '../../shell/chart-placeholders.tsx'
import type { ChartSearch } from '../../shell/chart-search.ts'
import { RangeTabs } from '../../shell/range-tabs.tsx'
import style from './overview-page.module.css'

const EndpointCharts = lazy(async () => {
  const { EndpointCharts: charts } = await import('../../shell/endpoint-charts.tsx')
  return { default: charts }
})

type TrafficProps = {
  /** Undefined while they are loading. */
  readonly endpoints: readonly Endpoint[] | undefined
  readonly search: ChartSearch
}

/** Records that arrive at one endpoint, and the speed of their delivery. */
export function Traffic({ endpoints, search: { range = '1h', endpoint } }: TrafficProps) {
  const shown = endpoints?.find(({ id }) => id === endpoint) ?? endpoints?.[0]
  return (
    <Section
      title="Traffic"
      about={shown === undefined ? '\u00a0' : `What arrives at ${shown.name}.`}
      actions={
        endpoints !== undefined && endpoints.length > 1 && <EndpointChoice endpoints={endpoints} shown={shown?.id ?? ''} />
      }
    >
      <RangeTabs range={range} />
      <Suspense fallback={<ChartPlaceholders />}>
        {shown === undefined ? <ChartPlaceholders /> : <EndpointCharts endpoint={shown.id} range={range} />}
      </Suspense>
    </Section>
  )
}

function EndpointChoice({ endpoints, shown }: { readonly endpoints: readonly Endpoint[]; readonly shown: string }) {
  const navigate = useNavigate()
  const choices = endpoints.map(({ id, name }) => ({ value: id, label: name }))
  const choose = (endpoint: string) => void navigate({ to: '.', search: (search) => ({ ...search, endpoint }), replace: true })
  return (
    <div className={style.choice}>
      <SelectField label="Endpoint" value={shown} choices={choices} onChange={choose} />
    </div>
  )
}
