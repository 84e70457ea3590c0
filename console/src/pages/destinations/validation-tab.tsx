import type { Destination } from '../../api/destinations.ts'
import { Card, Section } from '../../design/layout.tsx'
import { Time } from '../../design/time.tsx'
import { Validation } from './validation.tsx'
import { WaitingEndpoints } from './waiting-endpoints.tsx'

/** Whether the destination works, and who can use it. */
export function ValidationTab({ destination }: { readonly destination: Destination }) {
  const { status, validated_at } = destination
  return (
    <>
      <Section
        title="Validation"
        about={
          validated_at === null ? (
            'Inlet tries each step of a delivery with a small object, and deletes it.'
          ) : (
            <>
              The settings were found valid <Time at={validated_at} />.
            </>
          )
        }
      >
        <Card>
          <Validation destination={destination} />
        </Card>
      </Section>
      {status === 'valid' && <WaitingEndpoints destination={destination} />}
    </>
  )
}
