/* hardware.c - one table of robots. To add one, add its fields and its line in `types`. */
#include "config/hardware.h"

#define CHOICES(...) ((const char *const[]){__VA_ARGS__, NULL})

static const struct hardware_field franka[] = {
    {"node_rank", FIELD_INT, NULL},
    {"robot_ip", FIELD_IP, NULL},
    {"camera_serials", FIELD_LIST, NULL},
    {"camera_type", FIELD_TEXT, CHOICES("realsense", "zed", "lumos")},
    {"gripper_type", FIELD_TEXT, CHOICES("franka", "robotiq")},
    {"gripper_connection", FIELD_TEXT, NULL},
    {"controller_node_rank", FIELD_INT, NULL},
    {"disable_validate", FIELD_BOOL, NULL},
    {NULL, FIELD_TEXT, NULL},
};

static const struct hardware_field dual_franka[] = {
    {"node_rank", FIELD_INT, NULL},
    {"left_robot_ip", FIELD_IP, NULL},
    {"right_robot_ip", FIELD_IP, NULL},
    {"left_camera_serials", FIELD_LIST, NULL},
    {"right_camera_serials", FIELD_LIST, NULL},
    {"base_camera_serials", FIELD_LIST, NULL},
    {"camera_type", FIELD_TEXT, CHOICES("realsense", "zed", "lumos")},
    {"base_camera_type", FIELD_TEXT, CHOICES("realsense", "zed", "lumos")},
    {"left_camera_type", FIELD_TEXT, CHOICES("realsense", "zed", "lumos")},
    {"right_camera_type", FIELD_TEXT, CHOICES("realsense", "zed", "lumos")},
    {"left_gripper_type", FIELD_TEXT, CHOICES("franka", "robotiq")},
    {"right_gripper_type", FIELD_TEXT, CHOICES("franka", "robotiq")},
    {"left_gripper_connection", FIELD_TEXT, NULL},
    {"right_gripper_connection", FIELD_TEXT, NULL},
    {"left_controller_node_rank", FIELD_INT, NULL},
    {"right_controller_node_rank", FIELD_INT, NULL},
    {NULL, FIELD_TEXT, NULL},
};

static const struct hardware_field dosw1[] = {
    {"node_rank", FIELD_INT, NULL},       {"robot_url", FIELD_TEXT, NULL},
    {"left_arm_port", FIELD_INT, NULL},   {"right_arm_port", FIELD_INT, NULL},
    {"left_lead_port", FIELD_INT, NULL},  {"right_lead_port", FIELD_INT, NULL},
    {"camera_serials", FIELD_LIST, NULL}, {NULL, FIELD_TEXT, NULL},
};

static const struct hardware_field gim_arm[] = {
    {"node_rank", FIELD_INT, NULL},
    {"can_interface", FIELD_TEXT, NULL},
    {"arm_variant", FIELD_TEXT, CHOICES("gim_arm_xl", "gim_arm")},
    {"camera_serials", FIELD_LIST, NULL},
    {"camera_type", FIELD_TEXT, NULL},
    {"enable_gripper", FIELD_BOOL, NULL},
    {"gripper_type", FIELD_TEXT, NULL},
    {"controller_node_rank", FIELD_INT, NULL},
    {"disable_validate", FIELD_BOOL, NULL},
    {NULL, FIELD_TEXT, NULL},
};

static const struct hardware_field turtle2[] = {
    {"node_rank", FIELD_INT, NULL},
    {NULL, FIELD_TEXT, NULL},
};

static const struct hardware_type types[] = {
    {"DOSW1", dosw1},    {"DualFranka", dual_franka}, {"Franka", franka},
    {"GimArm", gim_arm}, {"Turtle2", turtle2},
};

const char *const hardware_type_names[] = {"DOSW1",  "DualFranka", "Franka",
                                           "GimArm", "Turtle2",    NULL};

const struct hardware_type *hardware_type_find(struct strview name)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (sv_is(name, types[i].name))
            return &types[i];
    return NULL;
}

const struct hardware_field *hardware_field_find(const struct hardware_type *type,
                                                 struct strview name)
{
    for (const struct hardware_field *field = type->fields; field->name; field++)
        if (sv_is(name, field->name))
            return field;
    return NULL;
}
