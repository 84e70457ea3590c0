import { useNavigate } from '@tanstack/react-router'
import { type Endpoint, endpointsQuery, removeEndpoint } from '../../api/endpoints.ts'
import { Section } from '../../design/layout.tsx'
import { AskingButton } from '../../shell/asking-button.tsx'
import style from './endpoints.module.css'
import { removalEffects } from './removal-effects.ts'

type EndpointRemovalProps = { readonly account: string; readonly endpoint: Endpoint }

/** Deletes an endpoint, and says before what becomes of its data. */
export function EndpointRemoval({ account, endpoint }: EndpointRemovalProps) {
  const navigate = useNavigate()
  return (
    <Section
      title="Delete"
      about="It refuses new data at once, delivers what it has, and is then gone. Its files stay in your bucket."
    >
      <div>
        <AskingButton
          look="danger"
          title={`Delete the endpoint “${endpoint.name}”?`}
          action="Delete endpoint"
          typed={endpoint.name}
          change={{
            call: () => removeEndpoint(endpoint.id),
            changes: [endpointsQuery(account).queryKey],
            done: () => navigate({ to: '/in/$account/endpoints', params: { account } }),
            said: 'Endpoint is being deleted',
          }}
        >
          <ul className={style.reasons}>
            {removalEffects(endpoint).map((effect) => (
              <li key={effect}>{effect}</li>
            ))}
          </ul>
        </AskingButton>
      </div>
    </Section>
  )
}
