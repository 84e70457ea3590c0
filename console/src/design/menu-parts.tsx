import { Menu as BaseMenu } from '@base-ui/react/menu'
import type { ReactElement, ReactNode } from 'react'
import style from './menu.module.css'

export type MenuProps = { readonly trigger: ReactElement; readonly children: ReactNode; readonly align?: 'start' | 'end' }

/** A menu that opens as soon as it is there. */
export function OpenedMenu({ trigger, children, align = 'end' }: MenuProps) {
  return (
    <BaseMenu.Root defaultOpen>
      <BaseMenu.Trigger render={trigger} />
      <BaseMenu.Portal>
        <BaseMenu.Positioner className={style.place} sideOffset={6} align={align}>
          <BaseMenu.Popup className={style.popup}>{children}</BaseMenu.Popup>
        </BaseMenu.Positioner>
      </BaseMenu.Portal>
    </BaseMenu.Root>
  )
}

type MenuItemProps = {
  readonly children: ReactNode
  readonly onSelect?: () => void
  readonly icon?: ReactNode
  readonly danger?: boolean
  readonly render?: ReactElement
}

export function MenuItem({ children, onSelect, icon, danger = false, render }: MenuItemProps) {
  return (
    <BaseMenu.Item
      className={style.item}
      data-danger={danger || undefined}
      onClick={onSelect}
      {...(render === undefined ? {} : { render })}
    >
      {icon}
      {children}
    </BaseMenu.Item>
  )
}

export function MenuLabel({ children }: { readonly children: ReactNode }) {
  return <div className={style.label}>{children}</div>
}

export function MenuSeparator() {
  return <BaseMenu.Separator className={style.separator} />
}
